package nodegroup

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Teardown is what to do next to delete the group with its pool, and what it
// waits for; both are empty once it is gone. No node that runs is taken down, and
// none that comes up: the group is not deleted by force, so that AWS refuses it
// where an instance came in between.
func Teardown(o Observed) (steps []Step, waits string) {
	busy := o.in(lifecycle.Serving, lifecycle.Joining, lifecycle.Leaving, lifecycle.Retained, lifecycle.Aside, lifecycle.Unknown)
	switch {
	case !o.Exists:
		return nil, ""
	case o.Deleting:
		return nil, fmt.Sprintf("AWS is deleting Auto Scaling group %s", o.Name)
	case o.owner() != "":
		return nil, fmt.Sprintf("Auto Scaling group %s belongs to %s, so it is deleted there; to let go of the object, write deletionPolicy: Keep", o.Name, o.owner())
	case len(busy) > 0:
		return nil, fmt.Sprintf("it is deleted once it is empty, and has %s that are not in its warm pool: %s. Scale it down: "+
			"`aws autoscaling update-auto-scaling-group --auto-scaling-group-name %s --min-size 0 --desired-capacity 0`; or write deletionPolicy: Keep to leave it",
			plural(len(busy), "instance"), names(busy), o.Name)
	case o.Pool != nil && o.Pool.Deleting:
		return nil, "AWS is deleting the warm pool, and the group follows"
	case o.Pool != nil:
		return []Step{{Verb: DropPool, Reason: "nothing is in service, and the group is to be deleted"}}, ""
	}
	return []Step{{Verb: DeleteGroup, Reason: "it is empty"}}, ""
}

// Deletion says what deleting the NodeGroup will do.
func Deletion(w Wanted, o Observed) string {
	switch {
	case !o.Exists:
		return "nothing at AWS: there is no Auto Scaling group " + w.Group
	case w.Spec.DeletionPolicy == v1alpha1.DeleteGroup && o.owner() != "":
		return fmt.Sprintf("waits for ever: Auto Scaling group %s belongs to %s, which alone can delete it. Write deletionPolicy: Keep", o.Name, o.owner())
	case w.Spec.DeletionPolicy == v1alpha1.DeleteGroup:
		return fmt.Sprintf("deletes Auto Scaling group %s and its warm pool once nothing of it is in service; it takes no running node down, so it waits until the group is scaled to 0", o.Name)
	}
	text := fmt.Sprintf("nothing at AWS: Auto Scaling group %s and its nodes stay as they are", o.Name)
	var left []string
	for _, wanted := range []Hook{w.Launch, w.Terminate} {
		if _, there := o.own(wanted); there && !strings.HasPrefix(wanted.Name, ownPrefix) {
			left = append(left, wanted.Name)
		}
	}
	if len(left) > 0 {
		text += fmt.Sprintf(". Its hooks %s stay too, and nobody answers them any more, unless --lifecycle-hooks of the controller names them: delete them, or instances wait until their time is out",
			strings.Join(left, " and "))
	}
	return text
}

// ownPrefix is what the names of hooks begin with that Lifeboat answers in any
// group, unless it is told otherwise.
const ownPrefix = "lifeboat-"

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
