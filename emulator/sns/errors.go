package sns

import (
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as SNS returns them (Amazon SNS API Reference). The codes lack the suffix Exception on the
// wire.

func notFound(what string) error {
	return &wire.Error{Status: http.StatusNotFound, Code: "NotFound", Message: what + " does not exist"}
}

func noResource() error {
	return &wire.Error{Status: http.StatusNotFound, Code: "ResourceNotFound", Message: "Resource does not exist"}
}

func invalid(parameter, format string, args ...any) error {
	return wire.Errorf("InvalidParameter", "Invalid parameter: "+parameter+" Reason: "+format, args...)
}
