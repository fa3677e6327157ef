"""Files that several processes share: folders and files that nobody else wrote, locks, small records."""
