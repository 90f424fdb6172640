package gate

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"robotsgate/internal/keyfile"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy"
)

// sign makes the crawlers of the configuration that have a key sign their requests.
func (g *Gate) sign(crawlers policy.Crawlers) {
	for i, k := range g.config.Crawlers {
		key := k.Sign.Key()
		if key == nil {
			continue
		}
		s := proxy.Signing{Key: key, Agent: k.Sign.Agent, Dictionary: k.Sign.Form == keyfile.DictionaryAgent}
		crawlers.Known[i].Wrap, crawlers.Known[i].KeyID = s.Transport, key.ID()
	}
}

// logSigning logs the crawlers that sign their requests. Origins refuse signatures from the future, so that the clock
// must be right.
func (g *Gate) logSigning() {
	for _, k := range g.config.Crawlers {
		if key := k.Sign.Key(); key != nil {
			g.log.Info("requests are signed", "crawler", k.Name, "keyid", key.ID(), "agent", k.Sign.Agent)
		}
	}
}

// directories serves the key directories of the agents at the gate's own address. An agent's web
// server can pass the requests for its directory on to the gate.
type directories []*directory

// newDirectories returns the pages of the gate's own address for agents, by path.
func newDirectories(agents []keyfile.Agent) map[string]http.Handler {
	if len(agents) == 0 {
		return nil
	}
	var all directories
	for _, agent := range agents {
		all = append(all, &directory{authority: agent.Authority(), keys: agent.Keys, body: keyfile.Directory(agent.Keys)})
	}
	return map[string]http.Handler{keyfile.DirectoryPath: all}
}

// ServeHTTP serves the directory of the agent that Host names or, whatever Host is, that of the only agent.
func (all directories) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := all.of(r.Host)
	if d == nil {
		http.Error(w, "robotsgate: this gate has the keys of several agents, and Host names none of them", http.StatusNotFound)
		return
	}
	for _, field := range d.fields(time.Now()) {
		w.Header().Set(field.Name, field.Value)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(d.body))) // for HEAD as well
	w.Write(d.body)
}

func (all directories) of(host string) *directory {
	if t, err := canonical.ParseTarget("https", host, "/"); err == nil {
		for _, d := range all {
			if d.authority == t.Host {
				return d
			}
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return nil
}

// A directory is the directory of one agent.
type directory struct {
	authority string
	keys      []*keyfile.Key
	body      []byte

	mu     sync.Mutex
	signed []keyfile.Header
	at     time.Time // when it was signed
}

// signAgain is how long the signatures of a directory are used, so that requests cannot keep the gate
// busy with signing. They are valid for much longer.
const signAgain = time.Hour

// fields returns the header fields of the directory, with signatures that are valid at now.
func (d *directory) fields(now time.Time) []keyfile.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A clock that was set back would leave a signature of the future, which verifiers refuse.
	if age := now.Round(0).Sub(d.at); d.signed == nil || age < 0 || age >= signAgain {
		d.signed, d.at = keyfile.Headers(d.keys, d.authority, now), now.Round(0)
	}
	return d.signed
}

// Agents returns the agents of all crawlers with requests that are signed, in the order of the crawlers.
func (c *Config) Agents() (agents []keyfile.Agent) {
	for i := range c.Crawlers {
		agents = c.Crawlers[i].Sign.Add(agents)
	}
	return agents
}
