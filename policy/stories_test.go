package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/store/storetest"
	"robotsgate/policy/internal/origintest"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// TestStories runs testdata/origins/*.txtar: the answers of an origin for its
// robots.txt and tdmrep.json, and the decisions about requests to it. The clock is faked. An
// archive has responses as on the wire, under any name, and
//
//	config   keys of the robots section that differ from the defaults, and tdmrep, refuse, purposes
//	story    one step a line, see the cases below
//
// Relative URLs are those of https://example.com, the clock starts at the
// beginning of the year 2000.
func TestStories(t *testing.T) {
	gatetest.Archives(t, "origins/*.txtar", func(t *testing.T, ar *txtar.Archive) {
		synctest.Test(t, func(t *testing.T) { play(t, ar) })
	})
}

// A scene is a story that runs.
type scene struct {
	*testing.T
	parts  map[string]string
	robots Robots
	usage  Usage
	web    *origintest.Web
	store  movedStore
	engine *Engine
	agent  string
	fetch  []usage.Purpose // what the crawler fetches for

	crawlers map[string]*Crawler // that are configured, by product token
	crawler  *Crawler            // of the requests from now on; nil: of none of them
	where    string              // the step, for messages
}

func play(t *testing.T, ar *txtar.Archive) {
	s := &scene{T: t, parts: map[string]string{}, robots: defaults(), web: newOrigins(), store: movedStore{storetest.NewMap()}, agent: "ExampleBot/1.0",
		crawlers: map[string]*Crawler{"NewsBot": {Name: "news", Tokens: []string{"NewsBot"}}}}
	for _, f := range ar.Files {
		s.parts[f.Name] = string(f.Data)
	}
	for line := range strings.Lines(s.parts["config"]) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		s.configure(key, value)
	}
	s.engine = engineWith(t, s.config())
	n := 0
	for line := range strings.Lines(s.parts["story"]) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		s.where = fmt.Sprintf("step %d: %s", n, strings.TrimSpace(line))
		s.step(words[0], words[1:])
		synctest.Wait() // for background work
	}
}

// step carries out one line.
func (s *scene) step(verb string, args []string) {
	switch verb {
	case "origin": // URL ANSWER [CODING or late]: what it answers from now on
		s.origin(args[0], args[1], strings.Join(args[2:], " "))
	case "as": // USER-AGENT: of the requests from now on
		s.agent = strings.Join(args, " ")
	case "crawler": // [TOKEN]: the requests from now on are of the configured crawler with this product token; none: of none
		s.crawler = s.crawlers[strings.Join(args, "")]
	case "ask": // URL VERDICT… [age=… took=… retry=… status=… error=… tdmrep=… stated=… reserved=… read=…]
		s.ask(args[0], args[1:])
	case "host": // the same for a whole origin
		d, err := s.engine.DecideHost(s.Context(), s.request(args[0]))
		s.check("verdict", verdict(d, err), strings.Join(args[1:], " "))
	case "refresh": // URL [STATE]
		res, err := s.engine.Refresh(s.Context(), s.request(args[0]))
		if err != nil {
			s.Errorf("%s: %v", s.where, err)
		} else if len(args) > 1 {
			s.check("state", string(res.State), args[1])
		}
	case "sent": // NAME: [VALUE]: of the last fetch; before "fetched"
		s.sent(strings.TrimSuffix(args[0], ":"), strings.Join(args[1:], " "))
	case "fetched": // URL…: exactly these since the last time
		for i := range args {
			args[i] = absolute(args[i])
		}
		s.check("fetched", strings.Join(s.web.Fetched(), " "), strings.Join(args, " "))
	case "wait":
		time.Sleep(s.duration(args[0])) // fake clock
	case "clock": // DURATION: it was that much ahead, until now
		s.engine.Close()
		s.store.shift(s.duration(args[0]))
		s.restart()
	case "restart": // a new engine with the same store
		s.restart()
	case "config": // KEY VALUE…: and restart
		s.configure(args[0], strings.Join(args[1:], " "))
		s.restart()
	case "reload": // KEY VALUE…: without a restart
		s.configure(args[0], strings.Join(args[1:], " "))
		s.engine = s.engine.Reconfigured(s.config())
	default:
		s.Fatalf("%s: no such step", s.where)
	}
}

func (s *scene) origin(url, answer, coding string) {
	if f := origintest.Failures[answer]; f != nil {
		s.web.Serve(absolute(url), f)
		return
	}
	text, ok := s.parts[answer]
	switch {
	case !ok:
		s.Fatalf("%s: no such answer", s.where)
	case coding == "late":
		s.web.Serve(absolute(url), origintest.Late(raw(text)))
	case coding != "":
		s.web.Serve(absolute(url), origintest.Encoded(text, coding))
	default:
		s.web.Serve(absolute(url), raw(text))
	}
}

func (s *scene) ask(url string, want []string) {
	begun := time.Now()
	d, err := s.engine.Decide(s.Context(), s.request(url))
	took := time.Since(begun)
	if err == nil {
		s.replay(s.request(url), d)
	}
	var words []string
	for _, w := range want {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			words = append(words, w)
			continue
		}
		if d.Robots == nil {
			s.Errorf("%s: no evidence", s.where)
			return
		}
		got := map[string]string{
			"age": d.Robots.Age.String(), "took": took.String(), "retry": d.Robots.Retry.String(),
			"status": strconv.Itoa(d.Robots.Snapshot.Status), "line": strconv.Itoa(d.Rule.Line),
			"tdmrep": tdmrepOf(d), "stated": statedBy(d.Stated.Preferences...), "reserved": statedBy(d.Reserved), "read": d.ReadAs,
			"url": d.Robots.Snapshot.URL, "html": strconv.FormatBool(d.Robots.Snapshot.HTML), "error": strings.ReplaceAll(d.Robots.Snapshot.Error, " ", "_"),
		}[key]
		if key == "age" || key == "retry" || key == "took" {
			value = s.duration(value).String()
		}
		s.check(key, got, value)
	}
	s.check("verdict", verdict(d, err), strings.Join(words, " "))
}

// replay decides a request again by its evidence.
func (s *scene) replay(r Request, was *Decision) {
	d, ok := again(s.config(), r, was)
	if !ok {
		s.Errorf("%s: it can't be decided again", s.where)
	}
	s.check("verdict again", verdict(d, nil), verdict(was, nil))
	s.check("stated again", statedBy(d.Stated.Preferences...), statedBy(was.Stated.Preferences...))
	s.check("reserved again", statedBy(d.Reserved)+d.ReadAs, statedBy(was.Reserved)+was.ReadAs)
}

func (s *scene) sent(name, want string) {
	r := s.web.Last()
	if r == nil {
		s.Errorf("%s: nothing was sent", s.where)
		return
	}
	s.check(name, r.Header.Get(name), want)
	if err := origintest.OnlyUserAgent(r); err != nil {
		s.Errorf("%s: %v", s.where, err)
	}
}

func (s *scene) restart() {
	s.engine.Close() // twice does no harm
	s.engine = engineWith(s.T, s.config())
}

func (s *scene) config() Config {
	return Config{Crawlers: Crawlers{Known: slices.Collect(maps.Values(s.crawlers))}, Robots: s.robots, Usage: s.usage, Transport: s.web, Store: s.store}
}

func (s *scene) request(url string) Request {
	r := asks(s.T, absolute(url), s.agent)
	if s.crawler != nil {
		r.Crawler = s.crawler
		return r
	}
	r.Crawler.Purposes = s.fetch
	return r
}

// tdmrepOf returns the state of the tdmrep.json behind a decision.
func tdmrepOf(d *Decision) string {
	if d.TDMRep == nil {
		return "none"
	}
	return string(d.TDMRep.State)
}

// statedBy returns preferences in short form: category, value, source, and the line or the place.
func statedBy(preferences ...usage.Preference) string {
	var all []string
	for _, p := range preferences {
		if p == (usage.Preference{}) {
			continue
		}
		at := cmp.Or(strings.TrimPrefix(fmt.Sprint(":", p.Line), ":0"), ":"+string(p.In))
		all = append(all, fmt.Sprintf("%s:%s:%s%s", p.Category, p.Value(), p.Source, at))
	}
	return cmp.Or(strings.Join(all, ","), "nothing")
}

func (s *scene) check(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %s: got %q, want %q", s.where, what, got, want)
	}
}

func (s *scene) configure(key, value string) {
	switch key {
	case "tdmrep":
		s.usage.TDMRep = value == "true"
	case "refuse":
		s.usage.Reserved = map[string]Reserved{"true": RefuseReserved}[value]
	case "purposes":
		s.fetch = nil
		for name := range strings.FieldsSeq(value) {
			s.fetch = append(s.fetch, usage.Purpose(name))
		}
	default:
		d := yaml.NewDecoder(strings.NewReader(key + ": " + value))
		d.KnownFields(true)
		if err := d.Decode(&s.robots); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *scene) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatalf("%s: %v", s.where, err)
	}
	return d
}

func absolute(url string) string {
	if strings.HasPrefix(url, "/") {
		return "https://example.com" + url
	}
	return url
}

// A movedStore has sets of another time.
type movedStore struct{ *storetest.Map }

// shift makes the snapshots of example.com come from a clock that was ahead.
func (j movedStore) shift(by time.Duration) {
	for _, tdmrep := range []bool{false, true} {
		key := snapshot.Scope{Origin: "https://example.com", TDMRep: tdmrep, Asker: "robotsgate/0"}.Key()
		set, ok := j.Load(context.Background(), key)
		if !ok {
			continue
		}
		for _, s := range []**snapshot.Snapshot{&set.Good, &set.Last} {
			if *s != nil {
				*s = new(**s)
				(*s).Fetched = (*s).Fetched.Add(by)
			}
		}
		_ = j.Save(context.Background(), key, set)
	}
}
