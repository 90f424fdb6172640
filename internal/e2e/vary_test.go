package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/auditreport"
	"robotsgate/internal/cli"
	"robotsgate/internal/console"
	"robotsgate/internal/gatetest"
	"robotsgate/internal/history"
)

// robotsByAgent starts an origin that answers by User-Agent, with a Vary header or not: a crawler named NewsBot may not
// fetch /private/, other names may. Names with more in them than a name and a version get a 403, as from a firewall.
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
		switch agent := r.UserAgent(); {
		case agent == "NewsBot":
			fmt.Fprint(w, closedToNews)
		case regexp.MustCompile(`^robotsgate/[0-9.]+$`).MatchString(agent):
			fmt.Fprint(w, openToOthers)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const openToOthers, closedToNews = "User-agent: *\nAllow: /\n", "User-agent: *\nDisallow: /private/\n"

// TestRobotsByUserAgent: an origin sends crawlers another robots.txt than other clients. Decisions, the gate's
// response for robots.txt, the API, the history and the replay of the audit log must use the file
// that the crawler in question has received, and no client's User-Agent may change that file.
func TestRobotsByUserAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, log := filepath.Join(dir, "gate.yaml"), filepath.Join(dir, "audit.jsonl")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\negress: {allow_private: [127.0.0.0/8]}\n" +
		"log: {level: error, audit: audit.jsonl}\ncrawlers:\n- name: news\n  user_agents: [\"NewsBot*\"]\n  product_tokens: [NewsBot]\n"
	varies, silent := robotsByAgent(t, true), robotsByAgent(t, false)
	for range 2 { // the second gate loads what the first has stored
		gate := gatetest.Serve(t, dir, text)
		c := gatetest.Client(t, gate.Proxy)
		for _, origin := range []string{varies, silent} {
			for _, test := range []struct {
				agent  string
				status int
				robots string
			}{
				{"NewsBot/1 <script>", 403, closedToNews},
				{"Evil/1 <script>", 200, openToOthers},
				{"Evil-NewsBot/1", 200, openToOthers},
				{"NewsBot/2", 403, closedToNews},
			} {
				if status, _ := getAs(t, c, origin+"/private/x", test.agent); status != test.status {
					t.Errorf("%s, Vary %v: got %d, want %d", test.agent, origin == varies, status, test.status)
				}
				if _, body := getAs(t, c, origin+"/robots.txt", test.agent); body != test.robots {
					t.Errorf("%s, Vary %v: robots.txt is %q, want %q", test.agent, origin == varies, body, test.robots)
				}
				_, body := getAs(t, gatetest.Client(t, ""), gate.Admin+"/api/robots?origin="+origin+"&agent="+url.QueryEscape(test.agent), "")
				if want, err := json.Marshal(test.robots); err != nil || !strings.Contains(body, `"body": `+string(want)) {
					t.Errorf("%s: the API has %s, want %s", test.agent, body, want)
				}
			}
		}
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	}

	var out bytes.Buffer
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	configured := cli.Configured{Config: config}
	replay := &cli.Audit{Configured: configured, Options: auditreport.Options{Replay: true, File: []string{log}}}
	if err := replay.Run(t.Context(), streams); err != nil || !strings.Contains(out.String(), ": 32 records the same, 0 differences, evidence gone: 0,") {
		t.Errorf("the replay: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := (&cli.History{Configured: configured, Options: history.Options{Diff: true, Origin: varies}}).Run(streams); err != nil {
		t.Error(err)
	}
	for _, want := range []string{" NewsBot ", " robotsgate/"} {
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
