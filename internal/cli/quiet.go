package cli

import "log/slog"

// levelQuiet is the level for commands whose terminal belongs to somebody else.
const levelQuiet = slog.LevelWarn
