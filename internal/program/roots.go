//go:build linux

package program

import (
	"crypto/x509"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustRoots adds Mozilla's certificate authorities for systems without any of their own, such as a container with only
// this program. It must be called only once.
func trustRoots() error {
	roots := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return fmt.Errorf("parsing a Mozilla root certificate: %w", err)
		}
		if root.Constraint == nil {
			roots.AddCert(certificate)
		} else {
			roots.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	x509.SetFallbackRoots(roots)
	return nil
}
