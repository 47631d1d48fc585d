"""agno as the agent loop. The only room that imports it; deleting this folder removes agno and nothing else.

Import what you need from its modules, late: agno itself takes about half a second to import.
"""
