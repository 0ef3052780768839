"""What `session_ledger` keeps: tasks, what they still need, and what the engine has."""
