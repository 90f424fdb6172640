package docs

import (
	"os/exec"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestReadmeTags runs the lines of Python in docs/annotations.md that read Robots-Gate-Tags.
func TestReadmeTags(t *testing.T) {
	gatetest.Needs(t, "python3")
	program := ""
	for _, block := range blocks(t, "python") {
		if strings.Contains(block, "re.findall") {
			program = block
		}
	}
	for field, want := range map[string]string{
		"": "{}",
		`max-snippet;v=10;src=meta;scope="robots", noindex;src=meta;scope="robots"`:                     "{'max-snippet': 10, 'noindex': True}",
		`unavailable_after;v=@1893456000;src=meta;scope="robots", none;src=robots-tag;scope="x"`:        "{'unavailable_after': 1893456000, 'none': True}",
		`max-image-preview;v=large;src=meta;scope="a\", b;v=1, c;", x;src=meta;scope=%"caf%c3%a9, d"`:   "{'max-image-preview': 'large', 'x': True}",
		`max-snippet;v=-1;src=x-robots-tag;scope="*";remembered, noindex;src=meta;scope="*";remembered`: "{'max-snippet': -1, 'noindex': True}",
	} {
		out, err := exec.Command("python3", "-c", "import sys\nfield = sys.argv[1]\n"+program, field).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %v, %s, want %s", field, err, got, want)
		}
	}
}
