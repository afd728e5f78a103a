package ec2

type zoneReply struct {
	Name    string `xml:"zoneName"`
	ID      string `xml:"zoneId"`
	State   string `xml:"zoneState"`
	Region  string `xml:"regionName"`
	Group   string `xml:"groupName"`
	Border  string `xml:"networkBorderGroup"`
	Type    string `xml:"zoneType"`
	OptedIn string `xml:"optInStatus"`
}

type regionReply struct {
	Name     string `xml:"regionName"`
	Endpoint string `xml:"regionEndpoint"`
	OptedIn  string `xml:"optInStatus"`
}

type tagListReply struct {
	ResourceID   string `xml:"resourceId"`
	ResourceType string `xml:"resourceType"`
	Key          string `xml:"key"`
	Value        string `xml:"value"`
}
