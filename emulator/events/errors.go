package events

import (
	"fmt"
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as EventBridge returns them (EventBridge API Reference).

func validation(format string, args ...any) error {
	return wire.Errorf("ValidationException", format, args...)
}

func notValid(parameter, reason string) error {
	return validation("Parameter %s is not valid. Reason: %s", parameter, reason)
}

// constraint is the error of AWS's own validation of a member.
func constraint(value any, member, want string) error {
	return validation("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s", value, member, want)
}

func invalidPattern(err error) error {
	return &wire.Error{Code: "InvalidEventPatternException", Message: err.Error()}
}

func notFound(format string, args ...any) error {
	return &wire.Error{Code: "ResourceNotFoundException", Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

func ruleNotFound(name, bus string) error {
	return notFound("Rule %s does not exist on EventBus %s.", name, bus)
}

func busNotFound(name string) error { return notFound("Event bus %s does not exist.", name) }

func arnNotFound(arn string) error { return notFound("%s does not exist.", arn) }

func busExists(name string) error {
	return wire.Errorf("ResourceAlreadyExistsException", "Event bus %s already exists.", name)
}

func cannotDeleteDefault() error { return validation("Cannot delete event bus default.") }

func busHasRules() error {
	return validation("Event bus can't be deleted since it has rules.")
}

func ruleHasTargets() error { return validation("Rule can't be deleted since it has targets.") }

func limitExceeded() error {
	return wire.Errorf("LimitExceededException", "The requested resource exceeds the maximum number allowed.")
}
