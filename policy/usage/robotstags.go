package usage

import "robotsgate/policy/robotstag"

// readRobotsTags reads the robots tags that keep content out of training sets: noai and noimageai
// (DeviantArt, November 2022) and noml (noml.info). No tag says "y".
func readRobotsTags(c *collector) {
	for i := range c.in.Tags {
		if tag := &c.in.Tags[i]; reservesTraining(tag.Name) {
			in := InHeader
			if tag.Source == robotstag.Meta {
				in = InMeta
			}
			c.prefer(Preference{Category: string(TrainAI), Source: RobotsTag, In: in})
		}
	}
}

func reservesTraining(tag string) bool { return tag == "noai" || tag == "noimageai" || tag == "noml" }
