package cli

// chainsDir is where in data_dir it is kept how far the audit log's chains have come.
const chainsDir = "chains"
