package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestReadmeAudit runs the examples of questions to the audit log. Each finds the one record.
func TestReadmeAudit(t *testing.T) {
	dir := t.TempDir()
	gatetest.Write(t, filepath.Join(dir, "audit.jsonl"), fmt.Sprintf(
		`{"time":%q,"id":"A","crawler":"news","method":"GET","origin":"https://www.example.com","path":"/private/x",`+
			`"decision":"deny","reason":"rule","rule":"Disallow: /private/","line":2,"group":"*","status":403,"bytes":1,"duration":0}`+"\n",
		time.Now().UTC().Format(time.RFC3339)))
	_, block, _ := strings.Cut(section(t, "docs/audit.md", "Questions"), "```sh\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/audit.md has no examples of questions")
	}
	for example := range strings.Lines(block) {
		t.Run(example, func(t *testing.T) {
			if strings.Contains(example, "jq ") {
				gatetest.Needs(t, "jq")
			}
			cmd := exec.Command("sh", "-c", strings.Replace(example, "tail -F ", "tail ", 1)) // with -F it does not end
			cmd.Dir, cmd.Stderr = dir, os.Stderr
			if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "/private/") {
				t.Errorf("%v, with the output\n%s", err, out)
			}
		})
	}
}
