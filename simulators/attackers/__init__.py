"""What someone who receives our releases can still learn: attackers, to be run on one's own."""
