package terminal

import (
	"bytes"
	"testing"
)

// TestWhileNoTerminal: what is no terminal never ends the context.
func TestWhileNoTerminal(t *testing.T) {
	if ctx := While(t.Context(), new(bytes.Buffer)); ctx != t.Context() {
		t.Error("another context for a buffer")
	}
}
