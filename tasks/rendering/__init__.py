"""Pages as lists of blocks, the HTML and Markdown renderers, tables of scores and SVG charts."""
