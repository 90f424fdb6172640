package doctor

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/internal/gate"
	"robotsgate/internal/keyfile"
)

const (
	directoryTimeout = 5 * time.Second
	maxDirectory     = 64 << 10 // bytes; a key takes 160
	maxClockLead     = 5 * time.Second
)

// checkSigning checks the keys of crawlers with requests that are signed, and the directories that
// their agents publish.
func checkSigning(ctx context.Context, c *gate.Config) (all []finding) {
	agents := c.Agents()
	if len(agents) == 0 {
		return nil
	}
	for _, crawler := range c.Crawlers {
		if crawler.Sign.Key() != nil {
			all = append(all, checkKeyFile(crawler))
		}
	}
	pool, err := gate.Roots(c)
	if err != nil {
		return append(all, fault("signing directory", err.Error()))
	}
	transport, err := gate.Upstream(c, pool, nil, nil)
	if err != nil {
		return append(all, fault("signing directory", err.Error()))
	}
	defer transport.Close()
	for _, agent := range agents {
		all = append(all, checkDirectory(ctx, transport, named(c, "robotsgate keys"), agent)...)
	}
	return all
}

func checkKeyFile(crawler gate.Crawler) finding {
	file, id := crawler.Sign.KeyFile, crawler.Sign.Key().ID()
	subject, text := "signing key", fmt.Sprintf("%s, of %s: %s", filepath.Base(file), escape.Printable(crawler.Name), id)
	if mode, exposed := keyfile.Exposed(file); exposed {
		return finding{subject, unknown, fmt.Sprintf("%s; the group or others may read it (mode %04o)", text, mode), []string{"chmod 600 " + file}}
	}
	return finding{subject, passed, text, nil}
}

// checkDirectory fetches the directory of an agent, and checks that verifiers find the keys in it.
func checkDirectory(ctx context.Context, transport http.RoundTripper, keys string, agent keyfile.Agent) []finding {
	const subject = "signing directory"
	url := agent.Origin + keyfile.DirectoryPath
	command := keys + " --agent " + agent.Origin
	ctx, cancel := context.WithTimeout(ctx, directoryTimeout)
	defer cancel()
	resp, body, err := get(ctx, transport, url, "robotsgate-doctor")
	if err == nil && len(body) > maxDirectory {
		err = errors.New("the response is longer than 64 KiB, which is too much for a directory")
	}
	publish := "publish there what this prints: " + command
	if err != nil {
		return []finding{{subject, unknown, fmt.Sprintf("%s can't be fetched from here: %s", url, escape.Printable(err.Error())), []string{publish}}}
	}
	lines := "serve the header lines that this prints: " + command + " --headers"
	wrong := func(format string, args ...any) []finding {
		return []finding{fault(subject, url+" "+escape.Printable(fmt.Sprintf(format, args...)), publish, lines)}
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return wrong("redirects (status %d), which verifiers do not follow", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return wrong("has the status %d; every client must get it with 200", resp.StatusCode)
	}
	ids, err := keyfile.ReadDirectory(body)
	if err != nil {
		return wrong("can't be used: %v", err)
	}
	for _, key := range agent.Keys {
		if !slices.Contains(ids, key.ID()) {
			return wrong("lacks the key %s", key.ID())
		}
	}
	if media != keyfile.DirectoryType {
		return wrong("has the media type %q in place of %s", media, keyfile.DirectoryType)
	}
	clock := checkClock(resp, time.Now())
	for _, key := range agent.Keys {
		if err := keyfile.CheckHeaders(resp.Header, body, key, agent.Authority(), time.Now()); err != nil {
			// Not all verifiers want the signatures.
			text := fmt.Sprintf("%s has the key %s, but %v; some CDNs count no such key", url, key.ID(), err)
			return append([]finding{{subject, unknown, escape.Printable(text), []string{lines}}}, clock...)
		}
	}
	return append([]finding{{subject, passed, url + " has every key, with a valid signature of each", nil}}, clock...)
}

// checkClock compares this machine's clock with that of an agent, unless a cache has sent the response.
// Verifiers refuse signatures of the future.
func checkClock(resp *http.Response, now time.Time) []finding {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	lead := now.Sub(date)
	if err != nil || resp.Header.Get("Age") != "" || lead <= maxClockLead {
		return nil
	}
	return []finding{{"signing clock", unknown, fmt.Sprintf("this machine's clock is %v ahead of that of %s; verifiers refuse signatures of the future", lead.Round(time.Second), resp.Request.URL.Host),
		[]string{"let NTP set the clock of the gate's machine"}}}
}
