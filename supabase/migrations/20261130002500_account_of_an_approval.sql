-- Why: whoever approves a call approves the account it acts in. The row says which one that is, so that after the yes no other is used,
-- whatever was connected or revoked meanwhile.

alter table agent.approvals
    -- Empty for a call that acts in no account, and for what was asked before this column. An account that a deployment names in its
    -- code has no row of agent.connections, so nothing is referred to.
    add column connection_id uuid,
    -- As the person read it: a label, an address, never a secret.
    add column account text,
    add constraint approvals_account_names_a_connection check (account is null or connection_id is not null);
