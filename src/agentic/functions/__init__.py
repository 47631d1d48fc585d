"""The durable functions, one a file, thin: ids from the event, the runtime's call, plain data back."""
