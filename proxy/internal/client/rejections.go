package client

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"robotsgate/internal/logtext"
)

// Rejections count what is rejected for one reason. The zero value has none.
type Rejections struct {
	total  atomic.Int64
	logged logtext.Minute
}

// Add counts one of a client or a crawler. Once a minute it logs a line.
func (r *Rejections) Add(log *slog.Logger, text, name string, attrs ...any) {
	r.total.Add(1)
	if due := r.logged.Add(); due > 0 {
		log.Warn(text, slices.Concat(attrs, []any{"client", name, "others_since_last", due - 1})...)
	}
}
