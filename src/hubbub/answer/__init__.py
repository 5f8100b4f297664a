"""What is released: its values, draws and intervals (`evaluate`), a column of it (`column`), the whole (`release`)."""
