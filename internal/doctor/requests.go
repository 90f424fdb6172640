package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// requestTimeout bounds one request. The gate answers it itself.
const requestTimeout = 8 * time.Second

// page returns the URL of the gate's page that says which crawler the client is, under the name that only a gate answers.
func (e *diagnosis) page() string {
	if e.config.HTTPS.Intercept {
		return "https://robotsgate.invalid/crawler"
	}
	return "http://robotsgate.invalid/crawler"
}

// request sends a request of doctor's own, with the proxy and the CA of the environment.
func (e *diagnosis) request(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, body, err := get(ctx, &http.Transport{Proxy: http.ProxyFromEnvironment}, e.page())
	return e.arrived("request", string(body), err)
}

// curl sends a request by curl, if it is on this machine.
func (e *diagnosis) curl(ctx context.Context) []finding {
	if _, err := exec.LookPath("curl"); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+2*time.Second)
	defer cancel()
	var out, wrong strings.Builder
	cmd := exec.CommandContext(ctx, "curl", "-sS", "--max-time", fmt.Sprint(requestTimeout.Seconds()), e.page())
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &wrong, time.Second // its children may keep the output open
	err := cmd.Run()
	if text, _, _ := strings.Cut(strings.TrimSpace(wrong.String()), "\n"); err != nil && text != "" {
		err = errors.New(text)
	}
	return []finding{e.arrived("curl", out.String(), err)}
}

// arrived judges what a client received for the gate's page.
func (e *diagnosis) arrived(client, body string, err error) finding {
	said, _, _ := strings.Cut(body, "\n")
	crawler, is := strings.CutPrefix(said, "crawler: ")
	why, refused := strings.CutPrefix(said, "refused: ")
	switch {
	case err != nil:
		return fault(client, "does not come through: "+err.Error(), e.env())
	case refused:
		return fault(client, "comes through, but is refused", why)
	case !is:
		return fault(client, "does not come through: what answers is no gate", e.env())
	case crawler == "default":
		return finding{client, passed, "comes through", nil}
	}
	return finding{client, passed, "comes through, as " + crawler, nil}
}
