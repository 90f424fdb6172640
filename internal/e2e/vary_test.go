package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/cli"
	"robotsgate/internal/gatetest"
)

// robotsByAgent starts an origin that allows Evil everything and disallows /private/ for other
// clients. Its robots.txt has a Vary header or not.
func robotsByAgent(t *testing.T, vary bool) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			fmt.Fprint(w, "page")
			return
		}
		if vary {
			w.Header().Add("Vary", "Accept-Encoding")
			w.Header().Add("Vary", "user-agent")
		}
		if strings.HasPrefix(r.UserAgent(), "Evil") {
			fmt.Fprint(w, "User-agent: *\nAllow: /\n")
			return
		}
		fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRobotsByUserAgent: an origin sends each client another robots.txt. Decisions, the gate's
// response for robots.txt, the API, the history and the replay of the audit log must use the file
// that the crawler in question has received.
func TestRobotsByUserAgent(t *testing.T) {
	dir := t.TempDir()
	config, log := filepath.Join(dir, "gate.yaml"), filepath.Join(dir, "audit.jsonl")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\negress: {allow_private: [127.0.0.0/8]}\n" +
		"log: {level: error, audit: audit.jsonl}\ncrawlers:\n- name: news\n  user_agents: [\"NewsBot*\"]\n  product_tokens: [NewsBot]\n"
	varies, silent := robotsByAgent(t, true), robotsByAgent(t, false)
	const open, closed = "User-agent: *\nAllow: /\n", "User-agent: *\nDisallow: /private/\n"
	for range 2 { // the second gate loads what the first has stored
		gate := gatetest.Serve(t, dir, text)
		c := gatetest.Client(t, gate.Proxy)
		for _, test := range []struct {
			origin, agent string
			status        int
			robots        string
		}{
			{varies, "Evil/1", 200, open},
			{varies, "GoodBot/1", 403, closed},
			{varies, "NewsBot/1", 403, closed},
			{silent, "Evil/1", 200, open},
			{silent, "NewsBot/1", 403, closed},
			{silent, "GoodBot/1", 200, open}, // no configured crawler and no Vary: shares the file of Evil
		} {
			if status, _ := getAs(t, c, test.origin+"/private/x", test.agent); status != test.status {
				t.Errorf("%s, Vary %v: got %d, want %d", test.agent, test.origin == varies, status, test.status)
			}
			if _, body := getAs(t, c, test.origin+"/robots.txt", test.agent); body != test.robots {
				t.Errorf("%s, Vary %v: robots.txt is %q, want %q", test.agent, test.origin == varies, body, test.robots)
			}
			_, body := getAs(t, gatetest.Client(t, ""), gate.Admin+"/api/robots?origin="+test.origin+"&agent="+test.agent, "")
			if want := fmt.Sprintf("%q", test.robots); !strings.Contains(body, `"body": `+want) {
				t.Errorf("%s: the API has %s, want %s", test.agent, body, want)
			}
		}
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	}

	var out bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	configured := cli.Configured{Config: config}
	if err := (&cli.Audit{Configured: configured, Replay: true, File: []string{log}}).Run(t.Context(), streams); err != nil || !strings.Contains(out.String(), ": 24 records the same, 0 differences, evidence gone: 0,") {
		t.Errorf("the replay: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := (&cli.History{Configured: configured, Diff: true, Origin: varies}).Run(streams); err != nil {
		t.Error(err)
	}
	for _, want := range []string{" evil ", " goodbot ", " crawlers: newsbot "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the history:\n%s", want, out.String())
		}
	}
}

func getAs(t *testing.T, c *http.Client, url, agent string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
