package sign

import (
	"net/http"

	"github.com/dunglas/httpsfv"
)

// maxAccept bounds the Accept-Signature of one response, in bytes: all its lines together.
const maxAccept = 8 << 10

// Asks reports whether Accept-Signature (RFC 9421, 5.1) in the header of a response asks for
// signatures as the key with this ID makes them: a member's tag, alg and keyid must be absent or those of the
// signatures. The components and other parameters that it lists do not matter. A field that is no dictionary
// (RFC 9651), or is longer than 8 KiB, asks for nothing.
func Asks(response http.Header, keyID string) bool {
	lines := response["Accept-Signature"]
	if len(lines) == 0 {
		return false
	}
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if size > maxAccept {
		return false
	}
	members, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return false
	}
	for _, name := range members.Names() {
		member, _ := members.Get(name)
		list, ok := member.(httpsfv.InnerList)
		if ok && fits(list.Params, "tag", "web-bot-auth") && fits(list.Params, "alg", "ed25519") && fits(list.Params, "keyid", keyID) {
			return true
		}
	}
	return false
}

// fits reports whether a parameter is absent, or this string. A token is not a string.
func fits(params *httpsfv.Params, name, want string) bool {
	value, given := params.Get(name)
	return !given || value == any(want)
}
