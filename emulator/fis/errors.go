package fis

import (
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as FIS returns them (FIS API Reference).

func validation(format string, args ...any) error {
	return wire.Errorf("ValidationException", format, args...)
}

func quotaExceeded(format string, args ...any) error {
	e := wire.Errorf("ServiceQuotaExceededException", format, args...)
	e.Status = http.StatusPaymentRequired
	return e
}

func notFound(format string, args ...any) error {
	e := wire.Errorf("ResourceNotFoundException", format, args...)
	e.Status = http.StatusNotFound
	return e
}

func tokenReused() error {
	e := wire.Errorf("ConflictException", "The client token was already used with other parameters.")
	e.Status = http.StatusConflict
	return e
}
