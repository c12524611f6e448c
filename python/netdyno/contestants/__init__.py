"""Who can be measured, what a new contestant starts from, and how much code each is."""
