//! Results as terminal tables, JSON and one self-contained HTML file.
