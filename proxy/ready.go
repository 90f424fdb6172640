package proxy

import (
	"net/http"
	"time"
)

// notReady returns what to answer while nothing may be served, nil if it may. No
// decision is made then, and nothing is asked of any origin.
func (p *Proxy) notReady(x *exchange) *problem {
	if p.Ready == nil {
		return nil
	}
	err := p.Ready()
	if err == nil {
		return nil
	}
	x.Error = err.Error()
	return &problem{
		status: http.StatusServiceUnavailable, kind: "audit", title: "The gate can't write down what it does", fault: "proxy_internal_error",
		cause: "audit log", retry: 10 * time.Second,
		detail: "The gate serves nothing while its audit log can't be written (log.audit_required). Its operator finds out more in its log: " +
			"check the space and permissions of log.audit. It goes on by itself as soon as a record can be written.",
	}
}
