"""What was found, as frozen data: a file for each subject."""
