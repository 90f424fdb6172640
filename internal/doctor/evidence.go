package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/escape"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

const overviewTimeout = 3 * time.Second

// checkEvidence says which key the audit log of the configuration has, and asks the running gate for the state of the
// log.
func checkEvidence(ctx context.Context, c *gate.Config) (all []finding) {
	if c.Log.Audit.File == "" {
		return nil
	}
	const subject = "audit log"
	signer, err := datadir.Signer(c)
	running, errAsked := askEvidence(ctx, c)
	if errAsked == nil && signer != nil && !isLogOf(signer, running) {
		errAsked = fmt.Errorf("the gate that runs has another log, %s", running.Name)
	}
	switch {
	case errAsked != nil && err != nil:
		all = append(all, finding{subject, unknown, escape.Printable(err.Error()), nil})
	case errAsked != nil:
		all = append(all, finding{subject, passed, fmt.Sprintf("%s, with the verifier key %s", signer.Name(), signer.Key()), nil})
	case running.Broken != "":
		all = append(all, fault(subject, escape.Printable(fmt.Sprintf("%s, with the verifier key %s, is new, since the one before could not be continued: %s", running.Name, running.Key, running.Broken)),
			"find out who changed the log or data_dir, and keep what is left: "+named(c, "robotsgate audit --verify")+" LOG shows it"))
	default:
		all = append(all, finding{subject, passed, escape.Printable(fmt.Sprintf("%s, with the verifier key %s; %s in its last checkpoint", running.Name, running.Key, console.Plural(int(running.Size), "record"))), nil})
	}
	return all
}

// isLogOf reports whether the log of a gate is by the key of a signer.
func isLogOf(s *evidence.Signer, running *audit.Status) bool {
	keys, err := evidence.ParseKeys([]string{s.Key()})
	if err != nil {
		return false
	}
	key, ok := keys.Log(running.Name)
	return ok && key == running.Key
}

// askEvidence asks the admin listener of a gate for the state of its audit log: of the gate of robotsgate run that this
// shell uses, otherwise of that of the configuration.
func askEvidence(ctx context.Context, c *gate.Config) (*audit.Status, error) {
	if os.Getenv("ROBOTSGATE_ADMIN") == "" && c.Admin.Listen == "" {
		return nil, errors.New("admin.listen is off")
	}
	place := cmp.Or(os.Getenv("ROBOTSGATE_ADMIN"), "http://"+clientenv.Dialable(c.Admin.Listen))
	ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
	defer cancel()
	resp, body, err := get(ctx, &http.Transport{}, place+"/api/overview", "")
	if err != nil {
		return nil, fmt.Errorf("no gate answers at %s", place)
	}
	var overview struct{ Evidence *audit.Status }
	if err := json.Unmarshal(body, &overview); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("what answers at %s is no gate", place)
	}
	if overview.Evidence == nil {
		return nil, fmt.Errorf("the gate at %s has no audit log", place)
	}
	return overview.Evidence, nil
}
