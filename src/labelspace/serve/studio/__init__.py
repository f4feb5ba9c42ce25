"""The studio: one local page on which labels are written, and documents are shown as they are labelled now."""
