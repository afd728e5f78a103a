module github.com/lifeboat-dev/lifeboat/modules/workload

go 1.26.8
