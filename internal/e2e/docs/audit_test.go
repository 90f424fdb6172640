package docs

import (
	"bufio"
	"fmt"
	"io"
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
			cmd := exec.Command("sh", "-c", "exec "+example)
			cmd.Dir, cmd.Stderr = dir, os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			out := bufio.NewReader(stdout)
			first, _ := out.ReadString('\n')
			if strings.Contains(example, "--follow") {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
			}
			rest, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil || !strings.Contains(first+string(rest), "/private/") {
				t.Errorf("%v, with the output\n%s%s", err, first, rest)
			}
		})
	}
}
