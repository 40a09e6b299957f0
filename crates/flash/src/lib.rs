//! NAND flash: the array, its timing, translation layers, garbage collection, wear.
