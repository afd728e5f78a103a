package elb

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Errors as Elastic Load Balancing returns them (ELBv2 API Reference). The codes lack the suffix
// Exception on the wire.

func notFound(which string) error {
	return wire.Errorf("TargetGroupNotFound", "Target groups '%s' not found", which)
}

func duplicate(name string) error {
	return wire.Errorf("DuplicateTargetGroupName", "A target group with the same name '%s' exists, but with different settings", name)
}

func invalid(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

func invalidTarget(id, why string) error {
	return wire.Errorf("InvalidTarget", "The following targets: '%s' %s", id, why)
}
