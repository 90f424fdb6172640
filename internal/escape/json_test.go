package escape

import "testing"

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\"ü/中\"}\n":      "{\"a\":\"ü/中\"}\n",
		"\"\u202e\u0085\u009b\"": `"\u202e\u0085\u009b"`,
		"\"\x7f\U000e0001\"":     `"\u007f\udb40\udc01"`,
	} {
		if got := string(JSON([]byte(in))); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
