package doctor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"robotsgate/internal/escape"
)

// clientTimeout bounds the request that shows that a client uses the gate, and, if it does not, the two
// requests that find the reason. On a busy machine pnpm and browsers need several seconds to start, and some
// clients wait 8 s for an answer.
const clientTimeout = 20 * time.Second

const notFound = "is not on this machine"

// try checks all clients at the same time. It leaves out clients that are not found, unless
// they were named.
func (e *diagnosis) try(ctx context.Context, chosen []program, named bool) ([]finding, error) {
	temp, err := os.MkdirTemp("", "robotsgate-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := os.WriteFile(filepath.Join(temp, "Get.java"), []byte(javaGet), 0o600); err != nil {
		return nil, err
	}
	findings := make([]finding, len(chosen))
	var wg sync.WaitGroup
	for i, p := range chosen {
		wg.Go(func() { findings[i] = e.checkClient(ctx, p, temp) })
	}
	wg.Wait()
	return slices.DeleteFunc(findings, func(f finding) bool { return f.text == notFound && !named }), nil
}

// checkClient lets a client request, over https, a page under a name that only a gate
// answers. If this fails, two further requests find the reason.
func (e *diagnosis) checkClient(ctx context.Context, p program, temp string) finding {
	if p.settings != nil {
		return e.needs(p)
	}
	if p.get != nil {
		if p.get = installed(p.get, p.also); p.get == nil {
			return fault(p.name, notFound)
		}
	}
	late := fault(p.name, fmt.Sprintf("does not end within %v", clientTimeout), "if this machine is busy, check this client alone: "+named(e.config, "robotsgate doctor")+" "+p.name)
	first, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	if p.has != nil {
		if _, err := run(first, temp, os.Environ(), p.has); err != nil && p.name == "java" {
			return finding{p.name, unknown, "can't be tried without a JDK; it needs both of:", e.advice(ctx, p, true, true)}
		} else if err != nil {
			return fault(p.name, notFound)
		}
	}
	scheme, good := "https", "goes through the gate and trusts its CA"
	if !e.config.HTTPS.Intercept {
		scheme, good = "http", "goes through the gate"
	}
	if answer := e.fetch(first, p, temp, scheme+"://robotsgate.invalid"+cmp.Or(p.page, "/crawler"), true); e.isPEM(answer) {
		return identified(p, good, answer)
	}
	if first.Err() != nil {
		return late
	}
	ctx, cancel = context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	page := cmp.Or(p.fault, "/ca.pem")
	through := make(chan bool, 1)
	go func() { through <- e.isPEM(e.fetch(ctx, p, temp, "http://robotsgate.invalid"+page, true)) }()
	_, host, _ := strings.Cut(e.gate.url, "://")
	trusts := e.isPEM(e.fetch(ctx, p, temp, "https://"+host+page, false))
	goes := <-through
	switch {
	case ctx.Err() != nil:
		return late
	case trusts && goes:
		return fault(p.name, "trusts the CA, but goes around the gate for https", e.advice(ctx, p, false, true)...)
	case trusts:
		return fault(p.name, "trusts the CA, but does not go through the gate", e.advice(ctx, p, false, true)...)
	case goes:
		return fault(p.name, "goes through the gate, but does not trust its CA", e.advice(ctx, p, true, false)...)
	}
	if p.browser {
		if _, err := browse(ctx, p, temp, os.Environ(), "about:blank"); err != nil && ctx.Err() == nil {
			return fault(p.name, "does not start; to see why:", strings.Join(openPage(p, "about:blank"), " "))
		}
	}
	return fault(p.name, "does not go through the gate, nor trust its CA", e.advice(ctx, p, true, true)...)
}

// identified adds the answer of the gate to a client that uses it: which crawler the
// client is, or why it is refused.
func identified(p program, text string, answer []byte) finding {
	said, _, _ := strings.Cut(string(answer), "\n")
	said = escape.Printable(strings.TrimSpace(said))
	if why, refused := strings.CutPrefix(said, "refused: "); refused {
		f := fault(p.name, text+", but is refused", why)
		if p.login != "" && strings.Contains(why, "login") {
			f.advice = append(f.advice, p.login)
		}
		return f
	}
	if name, _ := strings.CutPrefix(said, "crawler: "); name != "default" {
		text += ", as " + name
	}
	return finding{p.name, passed, text, nil}
}

// isPEM reports whether answer has the gate's certificates.
func (e *diagnosis) isPEM(answer []byte) bool {
	return bytes.Contains(bytes.ReplaceAll(answer, []byte("\r"), nil), bytes.TrimSpace(e.gate.pem))
}

// fetch returns what a client prints for a URL, nil if it fails. Without proxies it
// ignores the shell's proxy variables.
func (e *diagnosis) fetch(ctx context.Context, p program, temp, address string, proxies bool) []byte {
	if p.get == nil { // Go: the proxy and the roots of the environment
		transport := &http.Transport{}
		if proxies {
			transport.Proxy = func(r *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(r) }
		}
		resp, body, err := get(ctx, transport, address, "")
		if err != nil || resp.StatusCode != http.StatusOK {
			return nil
		}
		return body
	}
	env := os.Environ()
	if !proxies {
		env = slices.DeleteFunc(env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return strings.HasSuffix(strings.ToLower(name), "_proxy")
		})
	}
	if p.browser {
		out, err := browse(ctx, p, temp, env, address)
		if err != nil {
			return nil
		}
		return pageText(out)
	}
	out, err := run(ctx, temp, env, e.expand(p.get, address))
	if err != nil {
		return nil
	}
	return out
}

// run returns what a command prints, in the folder temp and with this environment. It fails if
// the command does.
func run(ctx context.Context, temp string, env, command []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = temp
	cmd.Env = append(slices.Clone(env), "PYTHONDONTWRITEBYTECODE=1", "npm_config_fetch_retries=0")
	var out limitedBuffer
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // its children may keep the output open
	ownGroup(cmd)
	err := cmd.Run()
	return out.Bytes(), err
}

// A limitedBuffer keeps the beginning of a program's output.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 1 << 20
	b.Buffer.Write(p[:min(len(p), most-b.Len())])
	return len(p), nil
}
