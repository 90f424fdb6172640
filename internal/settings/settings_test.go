package settings

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/config"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/robotstxt"
	"robotsgate/proxy"
)

// parts has the settings that the parts receive from a configuration.
type parts struct {
	Proxy    proxy.Options
	Crawlers policy.Crawlers
}

func partsOf(c *config.Config) parts {
	e := Engine(c, nil, nil, nil, nil)
	return parts{Proxy(c), e.Crawlers}
}

// arrives has the only setting that each key of the configuration may change.
var arrives = map[string]string{
	"mode": "Crawlers.Default.Mode Crawlers.Known.0.Mode",

	"crawlers.name":                  "Crawlers.Known.0.Name",
	"crawlers.login.user":            "Crawlers.Known.0.Login.User",
	"crawlers.login.password_bcrypt": "Crawlers.Known.0.Login.Hash",
	"crawlers.sources":               "Crawlers.Known.0.Sources",
	"crawlers.user_agents":           "Crawlers.Known.0.UserAgents",
	"crawlers.product_tokens":        "Crawlers.Known.0.Tokens",
	"crawlers.purposes":              "Crawlers.Known.0.Purposes",
	"crawlers.mode":                  "Crawlers.Known.0.Mode",
	"crawlers.deny_status":           "Crawlers.Known.0.DenyStatus",
	"crawlers.max_connections":       "Crawlers.Known.0.MaxConnections",

	"unknown_clients": "Crawlers.RefuseUnknown",
}

// notAPart has the reasons why other keys are no settings of a part.
var notAPart = map[string]string{
	"listen":                 "gate.New listens there: every script",
	"listen_transparent":     "gate.New listens there: internal/e2e/transparent_linux_test.go",
	"data_dir":               "gate.New and the commands open it: two_gates.txtar",
	"crawlers.sign.key_file": "gate.sign makes a wrapper of it: signed.txtar",
	"crawlers.sign.agent":    "gate.sign: signed.txtar",
	"crawlers.sign.when":     "gate.sign: signed.txtar",
	"crawlers.sign.form":     "gate.sign: signed.txtar",
	"tags.cache_bytes":       "gate.New hands it to policy.NewTagCache as it is",
	"log.level":              "logger goes by it: log.txtar",
	"log.format":             "logger goes by it: log.txtar",
	"log.requests":           "RequestLines.choose goes by it: request_lines.txtar",
	"egress.ca_file":         "roots reads it: intercept.txtar",
	"limits.memory":          "gate.Run hands it to limitMemory as it is",
	"limits.shutdown_delay":  "gate.run waits: shutdown.txtar",
	"limits.shutdown_grace":  "gate.run waits: shutdown.txtar",
}

// TestSettings changes each key from its default, and compares the settings of the parts
// with the default ones.
func TestSettings(t *testing.T) {
	byDefault := flat(partsOf(base()))
	seen := map[string]bool{}
	for _, key := range keysOf("", reflect.TypeFor[config.Config]()) {
		seen[key] = true
		c := base()
		field := fieldOf(reflect.ValueOf(c).Elem(), key)
		offDefault(t, key, field)
		got := flat(partsOf(c))
		var changed []string
		for _, at := range slices.Sorted(maps.Keys(got)) {
			if got[at] != byDefault[at] {
				changed = append(changed, at)
			}
		}
		want, part := arrives[key]
		if _, not := notAPart[key]; !part && !not {
			t.Errorf("%s is a key that the tables don't know: where does it arrive?", key)
			continue
		}
		if strings.Join(changed, " ") != want {
			t.Errorf("%s: it changes %q, want %q", key, changed, want)
			continue
		}
		for _, at := range changed {
			if value := text(field); got[at] != value && !slices.Contains([]string{"unknown_clients"}, key) && at != "Proxy.Settings.Passthrough" {
				t.Errorf("%s: %s becomes %s, want %s", key, at, got[at], value)
			}
		}
	}
	for key := range maps.Keys(arrives) {
		if !seen[key] {
			t.Errorf("there is no key %s", key)
		}
	}
	for key := range maps.Keys(notAPart) {
		if !seen[key] {
			t.Errorf("there is no key %s", key)
		}
	}
}

// base returns a configuration with one item in each list of structs.
func base() *config.Config {
	c := config.Default()
	c.Crawlers = []config.Crawler{config.DefaultCrawler()}
	c.Crawlers[0].Login = config.Login{User: "u", PasswordBcrypt: "p"}
	return c
}

// keysOf returns the names of all values in a section of the configuration.
func keysOf(prefix string, section reflect.Type) (keys []string) {
	for f := range section.Fields() {
		name := prefix + f.Tag.Get("yaml")
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch {
		case !f.IsExported():
		case inner.Kind() == reflect.Struct && strings.HasSuffix(inner.PkgPath(), "internal/config"):
			keys = append(keys, keysOf(name+".", inner)...)
		case inner.Kind() == reflect.Struct && strings.HasPrefix(inner.PkgPath(), "robotsgate/") && !inner.Implements(reflect.TypeFor[fmt.Stringer]()):
			// The struct of a part.
		default:
			keys = append(keys, name)
		}
	}
	return keys
}

// fieldOf finds a key's value; of a list of structs, in its first item.
func fieldOf(section reflect.Value, key string) reflect.Value {
	name, rest, more := strings.Cut(key, ".")
	for f, v := range section.Fields() {
		if f.Tag.Get("yaml") != name {
			continue
		}
		if !more {
			return v
		}
		if v.Kind() == reflect.Slice {
			v = v.Index(0)
		}
		return fieldOf(v, rest)
	}
	panic("no key " + key)
}

// offDefault changes a value.
func offDefault(t *testing.T, key string, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case []config.Purpose:
		v.Set(reflect.ValueOf([]config.Purpose{"search", "tdm"}))
	case config.ClientsPolicy:
		v.SetString(string(config.RefuseClients))
	case []string:
		v.Set(reflect.ValueOf([]string{"/off", "/too"}))
	case []int:
		v.Set(reflect.ValueOf([]int{8443, 65535}))
	case []netip.Prefix:
		v.Set(reflect.ValueOf([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}))
	case []glob.Glob:
		v.Set(reflect.ValueOf([]glob.Glob{glob.Text("off.example")}))
	case *url.URL:
		v.Set(reflect.ValueOf(&url.URL{Scheme: "http", Host: "off.example"}))
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)))
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString("off")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 7)
		default:
			t.Fatalf("%s: what other value can a %s have?", key, v.Type())
		}
	}
}

// flat returns the values in a struct by their path.
func flat(v any) map[string]string {
	out := map[string]string{}
	flatten("", reflect.ValueOf(v), out)
	return out
}

func flatten(at string, v reflect.Value, out map[string]string) {
	if v.Kind() == reflect.Pointer && !v.IsNil() && strings.HasSuffix(v.Type().Elem().PkgPath(), "/policy") {
		v = v.Elem()
	}
	switch kind := v.Kind(); {
	case kind == reflect.Struct && !isValue(v):
		for f, inner := range v.Fields() {
			if f.IsExported() {
				flatten(strings.TrimPrefix(at+"."+f.Name, "."), inner, out)
			}
		}
	case kind == reflect.Slice && strings.HasSuffix(strings.TrimPrefix(v.Type().Elem().String(), "*"), "policy.Crawler"):
		for i := range v.Len() {
			flatten(fmt.Sprintf("%s.%d", at, i), v.Index(i), out)
		}
	default:
		out[at] = text(v)
	}
}

// isValue reports whether a struct is one value, not several.
func isValue(v reflect.Value) bool {
	_, is := v.Interface().(fmt.Stringer)
	return is
}

// text prints a value so that those of different types can be compared.
func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case func(host string) bool:
		if x == nil {
			return "none"
		}
		return fmt.Sprint(x("off.example"), x("other.example"))
	case []byte:
		return string(x)
	case *robotstxt.File:
		var paths []string
		if x != nil {
			for line := range strings.Lines(x.Body()) {
				if path, ok := strings.CutPrefix(line, "Disallow: "); ok {
					paths = append(paths, strings.TrimSpace(path))
				}
			}
		}
		return fmt.Sprint(paths)
	}
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	return fmt.Sprint(v.Interface())
}
