"""What fermix tells its owner about itself."""
