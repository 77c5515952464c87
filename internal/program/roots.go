//go:build linux

package program

import (
	"crypto/x509"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustRoots has connections trust the certification authorities that Mozilla does where the system has none of its
// own, as in a container with nothing but this program. It may be called once.
func trustRoots() error {
	roots := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return fmt.Errorf("a certification authority of Mozilla's: %w", err)
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
