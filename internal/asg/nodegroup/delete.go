package nodegroup

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Teardown returns the next step to delete the group with its pool, and what it
// waits for; both are empty once the group is gone. It never terminates a
// running or launching node: DeleteGroup does not use force, so AWS rejects it
// if an instance appears in between. It deletes no group of another cluster; cluster is the name of
// this one, empty if it is unknown.
func Teardown(o Observed, cluster string) (steps []Step, waits string) {
	busy := o.in(lifecycle.Serving, lifecycle.Joining, lifecycle.Leaving, lifecycle.Retained, lifecycle.Aside, lifecycle.Unknown)
	elsewhere, _ := o.belongsElsewhere(cluster)
	switch {
	case !o.Exists:
		return nil, ""
	case o.Deleting:
		return nil, fmt.Sprintf("AWS is deleting Auto Scaling group %s", o.Name)
	case o.owner() != "":
		return nil, fmt.Sprintf("Auto Scaling group %s belongs to %s, so it must be deleted there; to remove only the object, set deletionPolicy: Keep", o.Name, o.owner())
	case elsewhere != "":
		return nil, elsewhere + ". To remove only the object, set deletionPolicy: Keep"
	case len(busy) > 0:
		return nil, fmt.Sprintf("the group is deleted once it is empty; it has %s outside its warm pool: %s. Scale it down: "+
			"`aws autoscaling update-auto-scaling-group --auto-scaling-group-name %s --min-size 0 --desired-capacity 0`; or set deletionPolicy: Keep to keep the group",
			plural(len(busy), "instance"), names(busy), o.Name)
	case o.Pool != nil && o.Pool.Deleting:
		return nil, "AWS is deleting the warm pool; the group is deleted next"
	case o.Pool != nil:
		return []Step{{Verb: DropPool, Reason: "nothing is in service, and the group will be deleted"}}, ""
	}
	return []Step{{Verb: DeleteGroup, Reason: "it is empty"}}, ""
}

// Deletion describes the effect of deleting the NodeGroup.
func Deletion(w Wanted, o Observed) string {
	switch {
	case !o.Exists:
		return "nothing in AWS: there is no Auto Scaling group " + w.Group
	case w.Spec.DeletionPolicy == v1beta1.DeleteGroup && o.owner() != "":
		return fmt.Sprintf("waits forever: Auto Scaling group %s belongs to %s, and only %[2]s can delete it. Set deletionPolicy: Keep", o.Name, o.owner())
	case w.Spec.DeletionPolicy == v1beta1.DeleteGroup:
		return fmt.Sprintf("deletes Auto Scaling group %s and its warm pool once none of its instances is in service; it terminates no running node, so it waits until the group is scaled to 0", o.Name)
	}
	text := fmt.Sprintf("nothing in AWS: Auto Scaling group %s and its nodes stay as they are", o.Name)
	var left []string
	for _, wanted := range []Hook{w.Launch, w.Terminate} {
		if _, there := o.own(wanted); there && !strings.HasPrefix(wanted.Name, ownPrefix) {
			left = append(left, wanted.Name)
		}
	}
	if len(left) > 0 {
		text += fmt.Sprintf(". Its hooks %s stay too, and Lifeboat answers them only if the controller's --lifecycle-hooks names them: delete them, or instances wait for the hook timeout",
			strings.Join(left, " and "))
	}
	return text
}

// ownPrefix is the name prefix of the hooks that Lifeboat answers in any group
// by default.
const ownPrefix = "lifeboat-"

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
