"""What do the files that people already have say? One module per family of formats."""
