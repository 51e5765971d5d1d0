"""What a function reaches besides its arguments: found, read anew in each call, guarded, or refused."""
