package cli

import (
	"os"
	"testing"

	"robotsgate/internal/config"
)

// TestChooseRequestLines: an option precedes the key, and the key what a terminal shows by itself.
func TestChooseRequestLines(t *testing.T) {
	for _, test := range []struct {
		options    RequestLines
		key        string
		onTerminal bool
		want       config.Requests
	}{
		{RequestLines{}, "", false, config.NoRequests},
		{RequestLines{}, "", true, config.RefusedRequests},
		{RequestLines{}, "none", true, config.NoRequests},
		{RequestLines{}, "all", true, config.AllRequests},
		{RequestLines{}, "refused", false, config.RefusedRequests},
		{RequestLines{Quiet: true}, "all", false, config.NoRequests},
		{RequestLines{Quiet: true}, "", true, config.NoRequests},
		{RequestLines{Verbose: true}, "none", false, config.AllRequests},
		{RequestLines{Verbose: true}, "", true, config.AllRequests},
	} {
		text := ""
		if test.key != "" {
			text = "log: {requests: " + test.key + "}"
		}
		c, err := config.Parse("gate.yaml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := test.options.choose(c, test.onTerminal); got != test.want {
			t.Errorf("%+v, log.requests %q, on a terminal %v: got %s, want %s", test.options, test.key, test.onTerminal, got, test.want)
		}
	}
}
