package doctor

// The ids of the findings. docs/guides/doctor.md describes each of them.
const (
	idQueueMissing           = "queue-missing"
	idQueuePolicyRefuses     = "queue-policy-refuses"
	idQueuePolicyOpen        = "queue-policy-open"
	idQueuePolicyUnread      = "queue-policy-unread"
	idQueuePolicyUndenied    = "queue-policy-undenied"
	idQueueEncryptionAWSKey  = "queue-encryption-aws-key"
	idQueueEncryptionKey     = "queue-encryption-key-policy"
	idQueueUnencrypted       = "queue-unencrypted"
	idQueueRetentionShort    = "queue-retention-short"
	idQueueVisibilityLong    = "queue-visibility-long"
	idQueueDelay             = "queue-delay"
	idQueueMessageSize       = "queue-message-size"
	idQueueFIFO              = "queue-fifo"
	idQueueBacklog           = "queue-backlog"
	idQueueTwoReaders        = "queue-two-readers"
	idQueueReadByAnother     = "queue-read-by-another"
	idQueueOfAnotherTool     = "queue-of-another-tool"
	idDeadLetterMissing      = "dead-letter-missing"
	idDeadLetterAbsent       = "dead-letter-absent"
	idDeadLetterRetention    = "dead-letter-retention-short"
	idDeadLetterMaxReceives  = "dead-letter-max-receives"
	idRuleDisabled           = "rule-disabled"
	idRuleCustomBus          = "rule-custom-bus"
	idRuleOtherRegion        = "rule-other-region"
	idRuleNoTarget           = "rule-no-target"
	idRuleWrongTarget        = "rule-wrong-target"
	idRulePatternInvalid     = "rule-pattern-invalid"
	idRuleMatchesNothing     = "rule-matches-nothing"
	idRuleElsewhere          = "rule-elsewhere-matches-nothing"
	idRuleQuota              = "rule-quota"
	idTopicMissing           = "topic-missing"
	idTopicPolicyRefuses     = "topic-policy-refuses"
	idTopicPolicyOpen        = "topic-policy-open"
	idTopicEncryption        = "topic-encryption-aws-key"
	idSubscriptionMissing    = "subscription-missing"
	idSubscriptionFilter     = "subscription-filter"
	idSubscriptionDeadLetter = "subscription-dead-letter-missing"
	idTargetInputChanged     = "target-input-changed"
	idTargetFIFOGroup        = "target-fifo-without-group"
	idTargetOtherRegion      = "target-other-region"
	idTargetRole             = "target-role"
	idTargetDeadLetter       = "target-dead-letter-missing"
	idTargetDeadLetterRefuse = "target-dead-letter-refuses"
	idPatternSlip            = "pattern-slip"
	idPatternDoubt           = "pattern-doubt"
	idPatternNoise           = "pattern-noise"
	idPatternEngine          = "pattern-engine-disagrees"
	idKindUncovered          = "kind-uncovered"
	idKindPartlyCovered      = "kind-partly-covered"
	idKindCoveredTwice       = "kind-covered-twice"
	idKarpenterSameQueue     = "karpenter-same-queue"
	idKarpenterHearsToo      = "karpenter-hears-too"
	idKarpenterPolls         = "karpenter-polls"
	idKarpenterBlocks        = "karpenter-capacity-blocks"
	idKarpenterZonalShift    = "karpenter-zonal-shift"
	idNTHHearsToo            = "nth-hears-too"
	idNTHRuns                = "nth-runs"
	idNTHSameQueue           = "nth-same-queue"
	idNTHAnswersToo          = "nth-answers-too"
	idKuredRuns              = "kured-runs"
	idOceanRuns              = "ocean-runs"
	idDeschedulerRuns        = "descheduler-runs"
	idKOpsOld                = "kops-old"
	idAutoscalerRuns         = "autoscaler-runs"
	idManagedSpotNodes       = "managed-spot-nodes"
	idAutoModeNodes          = "auto-mode-nodes"
	idPoolWithoutHook        = "pool-without-hook"
	idPoolBeforeHook         = "pool-before-hook"
	idGroupBeforeHook        = "group-before-hook"
	idLaunchHookContinues    = "launch-hook-continues"
	idTerminateHookAbandons  = "terminate-hook-abandons"
	idRetainsNothing         = "retains-nothing"
	idHookTooShort           = "hook-too-short"
	idHookTargetFIFO         = "hook-target-fifo"
	idGroupUnheard           = "group-unheard"
	idCRDsMissing            = "crds-missing"
	idLifeboatMissing        = "lifeboat-missing"
	idLifeboatTwice          = "lifeboat-twice"
	idLifeboatNotReady       = "lifeboat-not-ready"
	idLifeboatNoLeader       = "lifeboat-no-leader"
	idLifeboatFewReplicas    = "lifeboat-few-replicas"
	idLifeboatOtherQueue     = "lifeboat-other-queue"
	idLifeboatVersions       = "lifeboat-versions"
	idLifeboatNotChecked     = "lifeboat-not-checked"
	idPolicyInvalid          = "policy-invalid"
	idPoliciesTied           = "policies-tied"
	idNodeConflict           = "node-conflict"
	idNodeWithoutProviderID  = "node-without-provider-id"
	idClockSkew              = "clock-skew"
	idCallFailed             = "call-failed"
	idPermissionMissing      = "permission-missing"
	idNotUnderstood          = "not-understood"
)

// IDs returns the ids of all findings of this package.
func IDs() []string {
	return []string{
		idQueueMissing, idQueuePolicyRefuses, idQueuePolicyOpen, idQueuePolicyUnread, idQueuePolicyUndenied, idQueueEncryptionAWSKey,
		idQueueEncryptionKey, idQueueUnencrypted, idQueueRetentionShort, idQueueVisibilityLong, idQueueDelay,
		idQueueMessageSize, idQueueFIFO, idQueueBacklog, idQueueTwoReaders, idQueueReadByAnother, idQueueOfAnotherTool,
		idDeadLetterMissing, idDeadLetterAbsent, idDeadLetterRetention, idDeadLetterMaxReceives,
		idRuleDisabled, idRuleCustomBus, idRuleOtherRegion, idRuleNoTarget, idRuleWrongTarget, idRulePatternInvalid,
		idRuleMatchesNothing, idRuleElsewhere, idRuleQuota,
		idTopicMissing, idTopicPolicyRefuses, idTopicPolicyOpen, idTopicEncryption, idSubscriptionMissing, idSubscriptionFilter, idSubscriptionDeadLetter,
		idTargetInputChanged, idTargetFIFOGroup, idTargetOtherRegion, idTargetRole, idTargetDeadLetter, idTargetDeadLetterRefuse,
		idPatternSlip, idPatternDoubt, idPatternNoise, idPatternEngine,
		idKindUncovered, idKindPartlyCovered, idKindCoveredTwice,
		idKarpenterSameQueue, idKarpenterHearsToo, idKarpenterPolls, idKarpenterBlocks, idKarpenterZonalShift, idNTHHearsToo, idNTHRuns, idNTHSameQueue, idNTHAnswersToo,
		idKuredRuns, idOceanRuns, idKOpsOld, idDeschedulerRuns, idAutoscalerRuns, idManagedSpotNodes, idAutoModeNodes,
		idPoolWithoutHook, idPoolBeforeHook, idGroupBeforeHook, idLaunchHookContinues, idTerminateHookAbandons, idRetainsNothing,
		idHookTooShort, idHookTargetFIFO, idGroupUnheard,
		idCRDsMissing, idLifeboatMissing, idLifeboatNotReady, idLifeboatNoLeader, idLifeboatFewReplicas, idLifeboatOtherQueue, idLifeboatVersions, idLifeboatTwice, idLifeboatNotChecked,
		idPolicyInvalid, idPoliciesTied, idNodeConflict, idNodeWithoutProviderID,
		idClockSkew, idCallFailed, idPermissionMissing, idNotUnderstood,
	}
}
