"""How many calls a vendor's account may see at once: arithmetic over declared numbers, checked before a deployment, not a limiter."""
