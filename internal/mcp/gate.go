package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"robotsgate/policy"
)

// maxAnswer bounds an answer of the admin listener, in bytes.
const maxAnswer = 1 << 20

// errNoGate means that no gate answers.
var errNoGate = errors.New("no gate answers")

// A gate asks the one that runs, by its admin listener.
type gate struct {
	admin     string // empty: there is none
	transport http.RoundTripper
}

// check returns the decision. With errNoGate the local configuration decides; no other error may lead to another decision.
func (g *gate) check(ctx context.Context, q Question) (*policy.Explanation, error) {
	query := url.Values{"url": {q.URL}}
	if q.Crawler != "" {
		query.Set("crawler", q.Crawler)
	}
	if q.Token != "" {
		query.Set("token", q.Token)
	}
	if q.Agent != "" {
		query.Set("agent", q.Agent)
	}
	var e policy.Explanation
	if err := g.get(ctx, "/api/decision?"+query.Encode(), "allowed", &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// nothingListens reports whether a connection was refused. A gate that answers late, a name that does not resolve and a
// lack of descriptors say nothing of that.
func nothingListens(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	return ok && op.Op == "dial" && !op.Timeout() && !dns && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
}

// get reads an answer of the API, which must have a member.
func (g *gate) get(ctx context.Context, path, member string, v any) error {
	if g.admin == "" {
		return fmt.Errorf("%w: admin.listen is empty", errNoGate)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.admin+path, nil)
	if err != nil {
		return err
	}
	resp, err := g.transport.RoundTrip(r)
	if nothingListens(err) && ctx.Err() == nil {
		return fmt.Errorf("%w at %s", errNoGate, g.admin)
	}
	if err != nil {
		return fmt.Errorf("the gate at %s does not answer: %w", g.admin, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the gate at %s does not answer: %w", g.admin, err)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members) // what is no object has no members
	var problem string
	if json.Unmarshal(members["error"], &problem); resp.StatusCode != http.StatusOK && problem != "" {
		return errors.New(problem)
	}
	if string(members[member]) == "" || resp.StatusCode != http.StatusOK || json.Unmarshal(body, v) != nil {
		return fmt.Errorf("what answers at %s, with status %d, is no gate of this version", g.admin, resp.StatusCode)
	}
	return nil
}
