package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// A refusal is the answer of /api/refusal.
type refusal struct {
	Refusal
	Change   string `json:"change"`             // what the client or the operator can do
	Override string `json:"override,omitempty"` // an entry of overrides that allows this request, see policy.Permitting
}

// refusal answers with the latest refusal of the request with an id, or for a URL. With an error it returns the status
// of the response.
func (a *admin) refusal(r *http.Request) (*refusal, int, error) {
	id, url := strings.TrimSpace(r.URL.Query().Get("id")), r.URL.Query().Get("url")
	if (id == "") == (url == "") {
		return nil, http.StatusBadRequest, errors.New("give id, or url")
	}
	f, ok := a.Overview.Refusal(id)
	if url != "" {
		target, err := canonical.ReadURL(url)
		if err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("url: %w", err)
		}
		f, ok = a.Overview.RefusalOf(target.String(), target.Origin())
	}
	if !ok {
		return nil, http.StatusNotFound, fmt.Errorf("none of the last %d refusals is of this request", MaxRefusals)
	}
	return &refusal{f, changes[f.Kind], permitting(&f)}, http.StatusOK, nil
}

// changes say what can be done about a refusal, by its kind, which is a policy.Reason or a kind of package proxy.
var changes = map[string]string{
	string(policy.ByRule):        "The publisher denies this URL. The operator can allow it with an override, in front of the others.",
	string(policy.ByUsage):       "The publisher reserves a use that this crawler fetches for. The operator can change the crawler's purposes or content_use, or allow the URL with an override, in front of the others.",
	string(policy.IsUnreachable): "Ask again when the origin's robots.txt can be fetched. Until then the operator can allow the URL with an override, in front of the others.",
	string(policy.TooComplex):    "A shorter URL may be decided. The operator can allow this one with an override, in front of the others.",
	string(policy.ByOverride):    "An override of the operator denies this URL. The operator can change it, or put one that allows the URL in front of it.",
	"guard":                      "The gate does not connect to this destination. The operator can permit it with egress.allow_private, egress.deny_hosts or egress.ports.",
	"login":                      "The client is none of the configured crawlers. It has to send a login, or the operator adds it to crawlers or changes unknown_clients.",
	"limit":                      "A limit is reached. Ask again later; the operator can raise the limit.",
	"budget":                     "The crawler's budget for this host is spent. Ask again when Retry-After has passed; the operator can raise the entry of pace.budgets.",
	"pace":                       "The request's turn would have come too late. Ask again later; the operator can raise pace.max_wait.",
	"audit":                      "The audit log can't be written. The operator has to find out why; log.audit_required makes the gate refuse requests until then.",
	"malformed":                  "The request has to be changed: no configuration permits it.",
}

// permitting returns the override that would have allowed a request which a decision has refused; "" if there is none.
func permitting(f *Refusal) string {
	switch policy.Reason(f.Kind) {
	case policy.ByRule, policy.ByUsage, policy.IsUnreachable, policy.TooComplex, policy.ByOverride:
	default:
		return ""
	}
	target, err := canonical.ParseURL(f.URL)
	if err != nil || f.Cut || f.Redacted {
		return ""
	}
	method := f.Method
	if f.URL == target.Origin() { // a tunnel that is passed through
		method = http.MethodConnect
	}
	o := policy.Permitting(target, method, f.Crawler)
	if o == nil {
		return ""
	}
	return o.Line()
}
