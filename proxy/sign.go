package proxy

import "robotsgate/proxy/internal/sign"

// Signing says how the requests of one crawler are signed (RFC 9421). See [sign.Signing].
type Signing = sign.Signing

// A SigningKey is an Ed25519 key.
type SigningKey = sign.Key
