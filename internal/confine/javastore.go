package confine

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"time"
	"unicode/utf16"
)

// storePassword is the one that every Java installation has for its file of certificate authorities.
const storePassword = "changeit"

// javaStore returns the certificates of a PEM file in Java's format JKS, in which all versions of Java
// read their certificate authorities: sun.security.provider.JavaKeyStore.
func javaStore(bundle []byte, now time.Time) []byte {
	var entries []byte
	count := uint32(0)
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		const trustedCertificate = 2
		entries = binary.BigEndian.AppendUint32(entries, trustedCertificate)
		entries = appendJavaString(entries, fmt.Sprintf("ca%d", count))
		entries = binary.BigEndian.AppendUint64(entries, uint64(now.UnixMilli()))
		entries = appendJavaString(entries, "X.509")
		entries = binary.BigEndian.AppendUint32(entries, uint32(len(block.Bytes)))
		entries = append(entries, block.Bytes...)
		count++
	}
	store := binary.BigEndian.AppendUint32(nil, 0xfeedfeed)
	store = binary.BigEndian.AppendUint32(store, 2) // version
	store = binary.BigEndian.AppendUint32(store, count)
	store = append(store, entries...)
	var seed []byte
	for _, c := range utf16.Encode([]rune(storePassword)) {
		seed = binary.BigEndian.AppendUint16(seed, c)
	}
	seed = append(seed, "Mighty Aphrodite"...)
	sum := sha1.Sum(append(seed, store...))
	return append(store, sum[:]...)
}

func appendJavaString(to []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(s))), s...)
}
