#include "supervisor/broker_meta.h"

#include <criterion/criterion.h>

/* A row of the table that nobody can perform would end the run. */
Test(broker_meta, every_attribute_call_is_known)
{
	for (int id = 0; id < SYS_ID_COUNT; id++)
		if (sysents[id].group == SYS_GROUP_META)
			cr_expect(broker_meta_knows((enum sys_id)id), "%s", sysents[id].name);
	cr_expect(broker_meta_knows(SYS_ID_ioctl));
	cr_expect_not(broker_meta_knows(SYS_ID_open));
}
