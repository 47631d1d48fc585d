-- Why: whoever settles an outcome a second time is told who settled it, when and how. There are few such lines among all effects.
create index effects_settled on agent.effects (organization_id, at desc) where kind in ('confirmed', 'denied');
