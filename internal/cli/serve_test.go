package cli

import (
	"os"
	"testing"

	"robotsgate/internal/gate"
	"robotsgate/internal/requestlog"
)

// TestChooseRequestLines: an option precedes the key, and the key what a terminal shows by itself.
func TestChooseRequestLines(t *testing.T) {
	for _, test := range []struct {
		options    RequestLines
		key        string
		onTerminal bool
		want       requestlog.Requests
	}{
		{RequestLines{}, "", false, requestlog.None},
		{RequestLines{}, "", true, requestlog.Refused},
		{RequestLines{}, "none", true, requestlog.None},
		{RequestLines{}, "all", true, requestlog.All},
		{RequestLines{}, "refused", false, requestlog.Refused},
		{RequestLines{Quiet: true}, "all", false, requestlog.None},
		{RequestLines{Quiet: true}, "", true, requestlog.None},
		{RequestLines{Verbose: true}, "none", false, requestlog.All},
		{RequestLines{Verbose: true}, "", true, requestlog.All},
	} {
		text := ""
		if test.key != "" {
			text = "log: {requests: " + test.key + "}"
		}
		c, err := gate.ParseConfig("gate.yaml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := test.options.choose(c, test.onTerminal); got != test.want {
			t.Errorf("%+v, log.requests %q, on a terminal %v: got %s, want %s", test.options, test.key, test.onTerminal, got, test.want)
		}
	}
}
